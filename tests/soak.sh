#!/usr/bin/env bash
# Runs the tests of reliability for SOAK_MINUTES (30), divided among the parts, and sums up.
# Every failure prints what repeats it. SOAK_SEED sets the first seed, SOAK_LOG the folder
# for logs, the binaries (so that the tree may change meanwhile) and the summary.
set -u
cd "$(dirname "$0")/.."
root=$PWD
minutes=${SOAK_MINUTES:-30}
seed=${SOAK_SEED:-$(date +%s)}
log=${SOAK_LOG:-$(mktemp -d)}
bin=$log/bin
mkdir -p "$bin"
echo "soak: $minutes minutes, first seed $seed, logs in $log"

build() { # features, tests... : puts them and the library that belongs to them into $bin
    local features=$1 name path
    shift
    for name in "$@"; do
        path=$(cargo test --quiet --no-run ${features:+--features "$features"} --test "$name" \
            --message-format=json 2>>"$log/build.log" |
            sed -n 's/.*"executable":"\([^"]*\/'"$name"'-[^"]*\)".*/\1/p' | tail -1)
        [ -x "$path" ] || { echo "$name was not built: see $log/build.log"; exit 1; }
        cp "$path" "$bin/$name"
        [ -n "$features" ] || cp "$(dirname "$path")"/libaoti_wgpu.{so,dylib} "$bin" 2>/dev/null
    done
}
build "" state_machine process models hostile_text
build faults faults

targets=()
if cargo fuzz --version >/dev/null 2>&1; then
    # The sanitizer is an unstable option of the compiler.
    RUSTC_BOOTSTRAP=1 cargo fuzz build --dev >>"$log/build.log" 2>&1 ||
        { echo "the fuzz targets were not built: see $log/build.log"; exit 1; }
    for target in fuzz/fuzz_targets/*.rs; do
        target=$(basename "$target" .rs)
        cp fuzz/target/*/debug/"$target" "$bin/fuzz_$target"
        targets+=("$target")
    done
else
    echo "fuzzing is left out: there is no cargo-fuzz (cargo install cargo-fuzz --locked)"
fi

failed=0
: >"$log/summary"
note() { echo "  $*" >>"$log/summary"; }

# Repeats a command until its share (in thousandths of the whole) is over, at least once.
share() { # name, thousandths, command...
    local name=$1 start=$SECONDS until=$((SECONDS + minutes * 60 * $2 / 1000)) count=0 result=
    shift 2
    while :; do
        export SOAK_SEED=$((seed + count * 1000))
        if ! "$@" >>"$log/$name.log" 2>&1; then
            failed=$((failed + 1))
            result=", FAILED in round $count: see $log/$name.log"
            echo "$name$result"
            grep -A3 -h "replay:" "$log/$name.log" | tail -4
            break
        fi
        count=$((count + 1))
        [ $SECONDS -lt $until ] || break
    done
    note "$(printf '%-14s %6d rounds, %5d s%s' "$name" $count $((SECONDS - start)) "$result")"
}

# libFuzzer for a share; what it keeps goes to fuzz/corpus, what fails to the logs. Tensors of
# any size are asked for, and cost nothing until they are written, which none is: what is
# bounded is the memory in use, and not what one call asks for.
fuzz() { # target, thousandths
    local target=$1 seconds=$((minutes * 60 * $2 / 1000)) result= folders
    folders=("$root/fuzz/corpus/$target")
    mkdir -p "${folders[0]}" "$log/artifacts"
    for folder in "tests/hostile_text/found/$target" $([ "$target" != metal ] || echo tests/fixtures/msl); do
        [ ! -d "$folder" ] || folders+=("$root/$folder")
    done
    AOTI_WGPU_BACKEND=host ASAN_OPTIONS=allocator_may_return_null=1 \
        "$bin/fuzz_$target" -max_total_time=$((seconds > 0 ? seconds : 1)) \
        -malloc_limit_mb=1073741824 -timeout=120 -report_slow_units=60 \
        -artifact_prefix="$log/artifacts/$target-" \
        "${folders[@]}" >>"$log/fuzz_$target.log" 2>&1 || {
        failed=$((failed + 1))
        result=", FAILED: see $log/fuzz_$target.log and $log/artifacts"
        echo "fuzzing $target$result"
    }
    note "$(printf '%-14s %s%s' "fuzz $target" "$(grep -a '^Done' "$log/fuzz_$target.log" | tail -1)" "$result")"
}

# Read as a whole before it runs: this file may change meanwhile as well.
{
    share machine 300 env SOAK_OPS=100000 "$bin/state_machine" machine
    share threads 125 env SOAK_OPS=40000 "$bin/state_machine" threads
    share repeat 125 env SOAK_RUNS=100000 "$bin/state_machine" repeat
    share load 25 env SOAK_RUNS=1000 "$bin/state_machine" load
    share hostile 25 "$bin/state_machine" hostile
    share models 75 env SOAK_LOADS=1000 SOAK_ROUNDS=1000 "$bin/models"
    share text 50 env SOAK_CASES=5000 "$bin/hostile_text"
    share faults 50 "$bin/faults"
    share process 50 "$bin/process"
    for target in "${targets[@]}"; do
        fuzz "$target" $((175 / ${#targets[@]}))
    done

    passed() { grep -ch "^test $1::.*ok$" "$log/$1.log"; }
    note "operations: $(($(passed machine) * 100000)) against the model, in $(passed machine) set-ups"
    note "runs of one program: $(($(passed repeat) * 100000)) in $(passed repeat) set-ups"
    note "loads of a model: $(($(grep -ch "^test loads::.*ok$" "$log/models.log") * 1000))"
    note "failures: $failed"
    echo "summary (also in $log/summary):"
    cat "$log/summary"
    exit $((failed > 0))
}
