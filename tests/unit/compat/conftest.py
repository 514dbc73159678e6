"""One device for each process of the tests."""

from helpers.pyverbs_device import _device_of_this_process  # noqa: F401 - pytest finds the fixture by its name here
