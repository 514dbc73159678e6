# Short names for what .ci/run and CONTRIBUTING.md say. Nothing is checked here that .ci/run does not check.

# all checks, as CI runs them, in a fresh environment
check:
    .ci/run

# the fast checks, in the environment that is active
lint:
    .ci/run lint

# build the native core into src/weftwork/engine
native:
    cmake -S . -B build/dev -G Ninja -DPython_EXECUTABLE="$(python -c 'import sys; print(sys.executable)')" -DWEFTWORK_INPLACE=ON -DWEFTWORK_WERROR=ON
    cmake --build build/dev

# the tests, on the source folder
test *arguments:
    PYTHONPATH=src python -m pytest {{ arguments }}

# the tests marked `sanitize`, on a build with the sanitizers
sanitize:
    .ci/run sanitize

# put Python and C++ into the one format
format:
    ruff format .
    ruff check --fix .
    clang-format -i native/*.cpp native/*/*.[ch]pp

# the documents, as HTML
docs:
    .ci/run docs
