# make demo   what the library does, on whatever this machine has
# make test   the whole suite
# make soak   the tests of reliability for SOAK_MINUTES (30)
# make bench  the host's benchmarks
# make install PREFIX=/usr/local

CARGO ?= cargo
CXX ?= c++
PREFIX ?= /usr/local
BUILD := build

# Mesa asks for one and complains on the terminal where there is none.
export XDG_RUNTIME_DIR ?= /tmp

.PHONY: demo test soak bench install c_client

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
