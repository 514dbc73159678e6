"""Drivers: they move datagrams between a NIC and a wire.

They also tell the NIC the time.
"""
