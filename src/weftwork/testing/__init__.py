"""Floor 6: conformance kits, for Weftwork and for users' own plug-ins."""
