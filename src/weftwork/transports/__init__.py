"""Floor 3: headers, recovery, ordering and defaults of each transport, one file each."""
