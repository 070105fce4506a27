# over_ssh.sh COUNT COMMAND...: the command beside so many hosts of network namespaces, which ssh knows as h1, h2, ...
. "$(dirname "$0")/../scenarios/hosts.inc.sh"
hosts "$1"
shift
there "$@"
