"""The scenario: sections and keys as rows, read, checked and written."""
