# Where values of tunables come from, that all ranks get them, and what is said of wrong ones.
unset PARNASS_CONFIG
export XDG_CONFIG_HOME="$TMPDIR/config"
mkdir -p "$XDG_CONFIG_HOME/parnass"
run() { "$PREFIX/bin/mpiexec" "$@" 2>&1; }
expect() {
    grep -qF -- "$1" <<<"$said" || { echo "expected '$1' in:"; echo "$said"; exit 1; }
}
refuse() { said=$(run "$@") && { echo "not refused: $*"; exit 1; }; true; }
hello="$PROGRAMS/hello"

refuse --tunable direct_treshold=5 "$hello"
expect "--tunable direct_treshold=5: there is no tunable 'direct_treshold'; did you mean direct_threshold?"
refuse --tunable direct_threshold "$hello"
expect "it must be NAME=VALUE"
export PARNASS_DIRECT=perhaps
refuse "$hello"
expect "PARNASS_DIRECT: 'perhaps' cannot be the value of direct: it must be on or off"
unset PARNASS_DIRECT
refuse -genv PARNASS_DIRECT_TRESHOLD 5 "$hello"
expect "PARNASS_DIRECT_TRESHOLD is no variable of Parnass; did you mean PARNASS_DIRECT_THRESHOLD?"
refuse -env PARNASS_DIRECT_THRESHOLD 5 "$hello" : "$hello"
expect "all ranks of a job have the same"

# What is decided reaches the ranks, and a rank cannot have another value.
refuse -n 2 --tunable direct_threshold=5 sh -c "PARNASS_DIRECT_THRESHOLD=6 $hello"
expect "PARNASS_DIRECT_THRESHOLD is '6' in this process, but mpiexec has decided '5'"
said=$(run -n 2 --tunable direct_threshold=5 "$hello")
expect "of 2"

# A later source wins: the file, the environment, the option.
printf '[tunables]\ndirect_threshold = 1\ncollective = "bcast:star"\n' >"$XDG_CONFIG_HOME/parnass/config.toml"
refuse -n 2 "$hello"
expect "bcast has no algorithm 'star'"
export PARNASS_COLLECTIVE=bcast:square
refuse -n 2 "$hello"
expect "bcast has no algorithm 'square'"
said=$(run -n 2 --tunable collective=bcast:chain "$hello")
expect "of 2"
unset PARNASS_COLLECTIVE
printf '[tunables]\ndirect_threshold = 1\ndirect_treshold = 2\n' >"$XDG_CONFIG_HOME/parnass/config.toml"
refuse -n 2 "$hello"
expect "config.toml, line 3: there is no tunable 'direct_treshold'; did you mean direct_threshold?"
said=$("$PREFIX/bin/parnass" info 2>&1) && { echo "info accepts it"; exit 1; }
expect "line 3: there is no tunable 'direct_treshold'"
rm -r "$XDG_CONFIG_HOME"

# A program that is started alone has its environment.
said=$(PARNASS_DIRECT_THRESHOLD=x "$hello" 2>&1) && { echo "not refused alone"; exit 1; }
expect "PARNASS_DIRECT_THRESHOLD: 'x' cannot be the value of direct_threshold"
