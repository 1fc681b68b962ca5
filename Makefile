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

soak:
	@.ci/ensure-tools
	tests/soak.sh
