"""iWARP: the same verbs over a TCP stream."""
