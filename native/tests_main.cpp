/// The program that runs the tests beside the code: `*_test.cpp`, behaviour of the core that has no Python face.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
