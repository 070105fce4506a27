# Hosts on one machine: network namespaces on a bridge, each with an sshd of its own. For scenarios that source it.
#
#   hosts COUNT       makes them: ssh and mpiexec know them as h1, h2, ... (10.213.0.1, 10.213.0.2, ...)
#   there COMMAND     runs a command in a namespace beside them, with an ssh that reaches them without a password
#   host N COMMAND    runs a command in the namespace of host N
#
# Where that is not permitted, or something is not installed, the scenario ends as skipped, with the reason.

skip() {
    echo "skip: $*"
    exit 77
}

hosts() {
    [ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
    command -v ip >/dev/null || skip "iproute2 is not installed"
    command -v ssh-keygen >/dev/null || skip "openssh-client is not installed"
    [ -x /usr/sbin/sshd ] || skip "openssh-server is not installed"
    net="p$$"
    ip netns add "$net-0" 2>/dev/null || skip "network namespaces are not permitted here"
    count=$1
    trap hosts_down EXIT
    ip -n "$net-0" link set lo up
    ip -n "$net-0" link add bridge type bridge 2>/dev/null || skip "there are no network bridges here"
    ip -n "$net-0" link set bridge up
    ip -n "$net-0" addr add 10.213.0.254/24 dev bridge
    keys="$TMPDIR/hosts"
    mkdir -p "$keys/bin" /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f "$keys/host"
    ssh-keygen -q -t ed25519 -N '' -f "$keys/user"
    cat >"$keys/sshd" <<END
HostKey $keys/host
AuthorizedKeysFile $keys/user.pub
PermitRootLogin yes
PasswordAuthentication no
StrictModes no
UsePAM no
PidFile none
SetEnv PATH=$keys/bin:/usr/local/bin:/usr/bin:/bin HOME=$keys
END
    cat >"$keys/config" <<END
IdentityFile $keys/user
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
END
    printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$keys/config" >"$keys/bin/ssh"
    chmod 755 "$keys/bin/ssh"
    for n in $(seq "$count"); do
        ip netns add "$net-$n"
        ip -n "$net-$n" link set lo up
        ip -n "$net-0" link add "to$n" type veth peer name eth0 netns "$net-$n"
        ip -n "$net-0" link set "to$n" master bridge up
        ip -n "$net-$n" addr add "10.213.0.$n/24" dev eth0
        ip -n "$net-$n" link set eth0 up
        printf 'Host h%s\n    HostName 10.213.0.%s\n' "$n" "$n" >>"$keys/config"
        ip netns exec "$net-$n" /usr/sbin/sshd -D -f "$keys/sshd" 2>>"$keys/log" &
    done
    for n in $(seq "$count"); do
        for _ in $(seq 100); do
            there ssh "h$n" true 2>/dev/null && break
            sleep 0.1
        done
        there ssh "h$n" true || { cat "$keys/log"; exit 1; }
    done
}

there() {
    ip netns exec "$net-0" env PATH="$keys/bin:$PATH" "$@"
}

host() {
    local n=$1
    shift
    ip netns exec "$net-$n" "$@"
}

hosts_down() {
    local status=$?
    for n in $(seq 0 "$count"); do
        # What is left in the namespace, an sshd at least.
        ip netns pids "$net-$n" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
        ip netns delete "$net-$n" 2>/dev/null || true
    done
    wait
    rm -rf "$keys"
    exit "$status"
}

# await TEXT COUNT FILE: until the text stands in so many lines of the file.
await() {
    for _ in $(seq 1500); do
        [ "$(grep -c -- "$1" "$3")" -ge "$2" ] && return
        sleep 0.02
    done
    echo "waited in vain for $2 times '$1' in:"
    cat "$3"
    exit 1
}

# nothing_runs WORD: until no process has the word in its command line.
nothing_runs() {
    for _ in $(seq 2000); do
        pgrep -f -- "$1" >/dev/null || return 0
        sleep 0.02
    done
    echo "left behind:"
    pgrep -af -- "$1"
    exit 1
}
