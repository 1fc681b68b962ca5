#!/usr/bin/env bash
# Runs the tests of reliability for SOAK_MINUTES (30), divided among the parts, and sums up.
# Every failure prints what repeats it. SOAK_SEED sets the first seed.
set -u
cd "$(dirname "$0")/.."
minutes=${SOAK_MINUTES:-30}
seed=${SOAK_SEED:-$(date +%s)}
log=${SOAK_LOG:-$(mktemp -d)}
echo "soak: $minutes minutes, first seed $seed, logs in $log"

build() { # features, test -> path of its binary
    cargo test --quiet --no-run ${1:+--features "$1"} --test "$2" --message-format=json 2>>"$log/build.log" |
        sed -n 's/.*"executable":"\([^"]*\/'"$2"'-[^"]*\)".*/\1/p' | tail -1
}
# The binary with faults comes last: the others are of a build without them.
declare -A binary
for name in state_machine process hostile_text; do binary[$name]=$(build "" $name); done
cp "${binary[state_machine]}" "$log/state_machine"
binary[faults]=$(build faults faults)
for name in state_machine process hostile_text faults; do
    [ -x "${binary[$name]}" ] || { echo "$name was not built: see $log/build.log"; exit 1; }
done

failed=0
rounds=()
# Repeats a command until its share (in thousandths of the whole) is over, at least once.
share() { # name, thousandths, command...
    local name=$1 until=$((SECONDS + minutes * 60 * $2 / 1000)) count=0
    shift 2
    while :; do
        export SOAK_SEED=$((seed + count * 1000))
        if "$@" >>"$log/$name.log" 2>&1; then
            count=$((count + 1))
        else
            failed=$((failed + 1))
            echo "FAILED: $name, round $count: see $log/$name.log"
            grep -A3 -h "replay:" "$log/$name.log" | tail -4
            break
        fi
        [ $SECONDS -lt $until ] || break
    done
    rounds+=("$(printf '%-12s %6d rounds' "$name" $count)")
}

machine="$log/state_machine"
share machine 450 env SOAK_OPS=100000 "$machine" machine
share threads 150 env SOAK_OPS=40000 "$machine" threads
share repeat 150 env SOAK_RUNS=2000 "$machine" repeat
share hostile 50 "$machine" hostile
share text 100 env SOAK_CASES=5000 "${binary[hostile_text]}"
share faults 50 "${binary[faults]}"
share process 50 "${binary[process]}"

echo "summary:"
printf '  %s\n' "${rounds[@]}"
echo "  machine: 100000 operations a set-up and round, $(grep -c 'test machine::.*ok' "$log/machine.log") set-ups passed"
echo "  failures: $failed"
exit $((failed > 0))
