"""Floor 5: APIs of other projects, offered by Weftwork's own parts."""
