"""The scenario: sections and keys as rows, how a file is read and checked, how one is written."""
