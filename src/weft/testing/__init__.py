"""Floor 5: conformance kits, for Weft and for users' own plug-ins."""
