# Short names for what .ci/run and CONTRIBUTING.md say. Nothing is checked here that .ci/run does not check.

# What `just setup` made comes first, active or not.
export PATH := justfile_directory() / ".venv/bin" + ":" + env("PATH")

# all checks, as CI runs them, in a fresh environment
check:
    .ci/run

# the fast checks, in the environment that is active
lint:
    .ci/run lint

# an environment in .venv whose `weftwork` is this folder, and which rebuilds the core when a source of it changes
setup python="python3.11":
    {{ python }} -m venv .venv
    .venv/bin/pip install -c constraints.txt cmake nanobind ninja scikit-build-core
    .venv/bin/pip install -c constraints.txt --no-build-isolation -C editable.rebuild=true -C editable.verbose=false -C build-dir=build/editable \
        -C cmake.define.WEFTWORK_UNITY=OFF -e '.[dev,docs,graph,bench,plan,ray,rdma]'

# build the native core with warnings as errors, and write its stub into src/weftwork/engine
native:
    cmake -S . -B build/dev -G Ninja -DPython_EXECUTABLE="$(python -c 'import sys; print(sys.executable)')" -DWEFTWORK_INPLACE=ON -DWEFTWORK_WERROR=ON
    cmake --build build/dev

# the C++ tests beside the code, without the Python module
native-test:
    cmake -S . -B build/dev -G Ninja -DPython_EXECUTABLE="$(python -c 'import sys; print(sys.executable)')" -DWEFTWORK_INPLACE=ON -DWEFTWORK_WERROR=ON
    cmake --build build/dev --target check-native

# the unit tests
quick *arguments:
    python -m pytest tests/unit {{ arguments }}

# the tests that belong to files, of source or of tests; without files all tests
test *files:
    python {{ if files == "" { "-m pytest" } else { "tests/steps/tests_of.py " + files } }}

# a wheel for other machines in dist, tried without a compiler; publishes nothing
wheel:
    python tests/steps/wheel.py

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
