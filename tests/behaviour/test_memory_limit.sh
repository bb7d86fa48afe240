#!/usr/bin/env bash
# Tests that inspect and generate give the same note if the machine or a control group (of either version) has too
# little memory left, and no note if there is enough.
#
# In: BUILD; a system on which a process may have mounts of its own. Out: exit 0, or 1 after saying what is wrong, or
# 77 if the system does not allow such mounts.
set -euo pipefail

forerun=$(realpath "${BUILD:-build}/forerun")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unshare -rm true 2>/dev/null || { echo "skipped: a process can't have mounts of its own here" >&2; exit 77; }

fail() {
    echo "$1" >&2
    exit 1
}

# The script `made` runs a command on a made-up system: KIND BYTES COMMAND...
cat > "$folder/made" <<'END'
folder=$1 kind=$2 bytes=$3
shift 3
kilobytes=$((1 << 30))
[ "$kind" != machine ] || kilobytes=$((bytes / 1024))
printf 'MemTotal: %d kB\nMemAvailable: %d kB\n' $kilobytes $kilobytes > "$folder/meminfo"
printf '4:memory:/a\n' > "$folder/groups"
[ "$kind" != v2 ] || printf '0::/a\n' > "$folder/groups"
mount --bind "$folder/meminfo" /proc/meminfo
mount --bind "$folder/groups" "/proc/$$/cgroup"
mount -t tmpfs none /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/a /sys/fs/cgroup/memory/a
[ "$kind" != v2 ] || echo "$bytes" > /sys/fs/cgroup/a/memory.max
[ "$kind" != v1 ] || echo "$bytes" > /sys/fs/cgroup/memory/a/memory.limit_in_bytes
exec "$@"
END

made() { # KIND BYTES VERB OPTION...: runs the verb on a made-up system; $code becomes its exit status
    code=0
    unshare -rm bash "$folder/made" "$folder" "$1" "$2" "$forerun" "${@:3}" >"$folder/out" 2>"$folder/err" || code=$?
}

"$forerun" quantize -m tools/demo/target --type q4_0 --quiet -o "$folder/model.gguf"
model=(-m "$folder/model.gguf")
for kind in machine v1 v2; do
    made $kind 1048576 generate "${model[@]}" -p x -n 1
    [ $code = 1 ] && grep -q 'which has 1.0 MB left' "$folder/err" || fail "$kind, generate: $code $(cat "$folder/err")"
    line=$(cat "$folder/err")
    for form in text json; do
        made $kind 1048576 inspect "${model[@]}" -o $form
        [ $code = 1 ] && [ "$(cat "$folder/err")" = "$line" ] ||
            fail "$kind, inspect -o $form: $code $(cat "$folder/err"), not $line"
        grep -qE '^resident  |"resident": ' "$folder/out" || fail "$kind, inspect -o $form: $(cat "$folder/out")"
    done
    for verb in "inspect" "generate -no-cnv -p x -n 1"; do
        # shellcheck disable=SC2086  # a verb is words
        made $kind 67108864 $verb "${model[@]}"
        [ $code = 0 ] && [ ! -s "$folder/err" ] || fail "$kind, $verb: $code $(cat "$folder/err")"
    done
done
