# make demo   what the library does, on whatever this machine has
# make test   the whole suite
# make soak   the tests of reliability for SOAK_MINUTES (30)
# make asan   the suite under AddressSanitizer and LeakSanitizer
# make tsan   its threads under ThreadSanitizer
# make deny   licences, sources and duplicates of the dependencies
# make bench  the host's benchmarks
# make install PREFIX=/usr/local

CARGO ?= cargo
CXX ?= c++
PREFIX ?= /usr/local
BUILD := build

# Mesa asks for one and complains on the terminal where there is none.
export XDG_RUNTIME_DIR ?= /tmp

.PHONY: demo test soak asan tsan deny bench install c_client

demo:
	@.ci/ensure-tools
	$(CARGO) build --examples
	$(CARGO) run -q --example adapters
	$(CARGO) run -q --example fused_qkv
	@$(MAKE) --no-print-directory $(BUILD)/demo/model.so
ifneq ($(AOTI_WGPU_BACKEND),host)
	$(CARGO) run -q --example run_program -- $(BUILD)/demo
else
	@echo "the demo program runs a kernel, which the host backend cannot"
endif

$(BUILD)/demo/model.so: examples/demo_program/program.cpp include/aoti_wgpu.h
	@mkdir -p $(BUILD)/demo
	cp examples/demo_program/data/* $(BUILD)/demo/
	$(CXX) -std=c++17 -O2 -Wall -Wextra -Werror -fPIC -shared -undefined dynamic_lookup -Iinclude $< -o $@ 2>/dev/null \
	  || $(CXX) -std=c++17 -O2 -Wall -Wextra -Werror -fPIC -shared -Iinclude $< -o $@

# The shaders are what is tested, also where the host would be faster.
test:
	@.ci/ensure-tools
	AOTI_WGPU_COPY=gpu $(CARGO) test --no-fail-fast
	AOTI_WGPU_COPY=gpu $(CARGO) test --features faults --test faults
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --quiet

# The host's side, in under five minutes; the device's: examples/bandwidth without --host.
bench:
	@.ci/ensure-tools
	$(CARGO) bench --bench host --bench calls
	$(CARGO) build --release --lib
	@mkdir -p $(BUILD)
	$(CC) -std=c11 -O2 -Wall -Wextra -Werror -Iinclude benches/pack_half.c \
	  target/release/libaoti_wgpu.a $(C_LIBRARIES) -o $(BUILD)/pack_half
	$(BUILD)/pack_half
	$(CARGO) run --release --example bandwidth -- --host --batch 5

# A C program against the header and the static library.
c_client: $(BUILD)/c_client
	$<

ifeq ($(shell uname -s),Darwin)
C_LIBRARIES := -lc++ -framework Metal -framework QuartzCore -framework CoreGraphics \
  -framework Foundation -framework AppKit
else
C_LIBRARIES := -lstdc++ -ldl -lpthread -lm
endif

$(BUILD)/c_client: examples/c_client.c include/aoti_wgpu.h
	@.ci/ensure-tools
	$(CARGO) build --lib
	@mkdir -p $(BUILD)
	$(CC) -std=c11 -O2 -Wall -Wextra -Werror -pedantic -Iinclude $< target/debug/libaoti_wgpu.a \
	  $(C_LIBRARIES) -o $@

# An optimised build under PREFIX: headers, both libraries, pkg-config and CMake packages.
install:
	$(CARGO) build --release --lib
	packaging/install "$(PREFIX)" "$${CARGO_TARGET_DIR:-target}/release"

# Long runs of the random and hostile tests: SOAK_MINUTES=30 divides itself among them.
soak:
	@.ci/ensure-tools
	tests/soak.sh

# The sanitizers are unstable options of the compiler; the tables of lines are enough debug
# information for them, and need a tenth of the disk.
SANITIZED := CARGO_PROFILE_DEV_DEBUG=line-tables-only CARGO_INCREMENTAL=0 RUSTC_BOOTSTRAP=1
TRIPLE := x86_64-unknown-linux-gnu

# The tests that load the library at run time need a process that has the sanitizer's runtime
# and shows it to libraries, which Rust's test binaries do not: they are left out here.
ASAN_TESTS := --lib --test state_machine --test runtime --test copy_device --test ops_data \
  --test msl_device --test hostile_text --test c_abi
asan:
	@.ci/ensure-tools
	$(SANITIZED) RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/asan AOTI_WGPU_COPY=gpu \
	  ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=4 \
	  LSAN_OPTIONS=suppressions=$(CURDIR)/tests/c/lsan.supp:print_suppressions=0 \
	  SOAK_RESIDENT_MB=1024 $(CARGO) test --target $(TRIPLE) --no-fail-fast $(ASAN_TESTS)

# The standard library has to be built with it, so this takes Debian's rustc-web, cargo-web and
# rust-web-src, and clang's runtime: apt-get install clang-16 libclang-rt-16-dev. Lavapipe is
# not built with it, so the host backend is what is run.
tsan:
	$(SANITIZED) RUSTC=/usr/bin/rustc CARGO_TARGET_DIR=target/tsan \
	  RUSTFLAGS="-Zsanitizer=thread -Zexternal-clangrt -Clinker=clang-16 -Clink-arg=-fsanitize=thread" \
	  TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1 SOAK_RESIDENT_MB=1024 \
	  /usr/bin/cargo test -Zbuild-std --target $(TRIPLE) --test state_machine -- ::host
	$(SANITIZED) RUSTC=/usr/bin/rustc CARGO_TARGET_DIR=target/tsan \
	  RUSTFLAGS="-Zsanitizer=thread -Zexternal-clangrt -Clinker=clang-16 -Clink-arg=-fsanitize=thread" \
	  TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1 AOTI_WGPU_BACKEND=host \
	  /usr/bin/cargo test -Zbuild-std --target $(TRIPLE) --lib

# Advisories need a database from a git host: cargo deny check advisories.
deny:
	cargo deny check licenses bans sources
