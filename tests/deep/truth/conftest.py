"""What the tests of this folder share: a way to print their figures."""

from helpers.figures import show  # noqa: F401 - pytest finds the fixture by its name here
