"""Floor 5: conformance kits, for Weftwork and for users' own plug-ins."""
