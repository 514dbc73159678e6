"""Drivers: they move datagrams between a NIC and a wire, and tell it the time."""
