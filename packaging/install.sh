#!/bin/sh
# Makes this machine a host of a Gleaner fleet: packages, enrolment, services. Can be repeated safely; see docs/fleet.md.
set -eu

usage() {
  cat <<'USAGE'
Usage: install.sh --packages FOLDER|URL --collector https://HOST:PORT [options]

  --packages FOLDER|URL     where gleaner-agent's package and SHA256SUMS lie (https://, or a folder of this machine)
  --checksum HASH           what `sha256sum SHA256SUMS` says: for a place that is not trusted by itself
  --collector URL           the collector to enrol with
  --recruiter URL           lend memory by this recruiter: installs gleaner-memoryd and gleaner-cli as well
  --token-file FILE         the token of `gleaner pki token`; - is standard input
  --token TOKEN             the same on the command line, where other users of this machine can read it

The token is taken from GLEANER_TOKEN unless one of the last two is given. A host that is enrolled needs none.
USAGE
}

fail() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}

packages='' checksum='' collector='' recruiter='' token=${GLEANER_TOKEN-} token_file=''
# Programs started from here must not inherit it.
unset GLEANER_TOKEN
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit ;;
    --packages | --checksum | --collector | --recruiter | --token | --token-file)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in
        --packages) packages=${2%/} ;;
        --checksum) checksum=$2 ;;
        --collector) collector=${2%/} ;;
        --recruiter) recruiter=${2%/} ;;
        --token) token=$2 ;;
        --token-file) token_file=$2 ;;
      esac
      shift 2
      ;;
    *) usage >&2 && fail "unknown: $1" ;;
  esac
done
[ -n "$packages" ] && [ -n "$collector" ] || { usage >&2 && fail '--packages and --collector are needed'; }
[ "$(id -u)" = 0 ] || fail 'packages are installed by root: run it with sudo'

case $collector in
  https://*) ;;
  *) fail "$collector: hosts speak to a collector by https://" ;;
esac
case $packages in
  https://* | /* | ./* | ../*) ;;
  http://127.0.0.1[:/]* | http://localhost[:/]*) ;;
  http://*) fail "$packages: what comes in the clear could be anybody's: https://, or a folder" ;;
  *) packages=./$packages ;;
esac

if command -v dpkg >/dev/null; then
  kind=deb architecture=$(dpkg --print-architecture)
elif command -v rpm >/dev/null; then
  kind=rpm architecture=$(uname -m)
else
  fail 'neither dpkg nor rpm is here: build from the sources'
fi
wanted=gleaner-agent
[ -z "$recruiter" ] || wanted='gleaner-cli gleaner-agent gleaner-memoryd'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

fetch() { # fetch NAME: downloads into the scratch folder
  case $packages in
    http*)
      if command -v curl >/dev/null; then
        curl --fail --silent --show-error --location --proto '=http,https' --proto-redir '=https' --output "$scratch/$1" "$packages/$1"
      else
        wget --quiet --output-document="$scratch/$1" "$packages/$1"
      fi || fail "$packages/$1 cannot be had"
      ;;
    *) cp "$packages/$1" "$scratch/$1" || fail "$packages has no $1" ;;
  esac
}

fetch SHA256SUMS
if [ -n "$checksum" ]; then
  echo "$checksum  $scratch/SHA256SUMS" | sha256sum --check --status || fail "SHA256SUMS is not the one of $checksum: nothing was installed"
fi
files=
for name in $wanted; do
  # Accept only package names without a path: deb NAME_VERSION_ARCH, rpm NAME-VERSION-RELEASE.ARCH.
  case $kind in
    deb) pattern="^[0-9a-f]\{64\}  \(${name}_[A-Za-z0-9.+~:-]*_\($architecture\|all\)\.deb\)\$" ;;
    rpm) pattern="^[0-9a-f]\{64\}  \($name-[0-9][A-Za-z0-9.+~_-]*\.\($architecture\|noarch\)\.rpm\)\$" ;;
  esac
  file=$(sed -n "s/$pattern/\1/p" "$scratch/SHA256SUMS")
  [ -n "$file" ] || fail "SHA256SUMS names no $kind of $name for $architecture"
  [ "$(printf '%s\n' "$file" | wc -l)" = 1 ] || fail "SHA256SUMS names several of $name: leave one version there"
  fetch "$file"
  (cd "$scratch" && grep -F "  $file" SHA256SUMS | sha256sum --check --status) || fail "$file is not what SHA256SUMS says: nothing was installed"
  files="$files $scratch/$file"
done

# apt reads the files as a separate user.
chmod -R a+rX "$scratch"
# shellcheck disable=SC2086 # names without spaces, as the patterns have them
case $kind in
  deb) DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends $files ;;
  rpm) if command -v dnf >/dev/null; then dnf --assumeyes install $files; else rpm --upgrade --replacepkgs $files; fi ;;
esac

# Settings go to a separate file: an upgrade of the package would ask about changes to its own file. Existing settings
# stay.
own=/etc/gleaner/memoryd.d
if [ -n "$recruiter" ] && ! grep -qs '^recruiters = ' /etc/gleaner/memoryd.toml "$own"/*.toml; then
  case $recruiter in *[!A-Za-z0-9.:/_\[\]-]*) fail "$recruiter is no address" ;; esac
  mkdir -p "$own"
  printf 'recruiters = ["%s"]\n' "${recruiter%/}" >"$own/install.toml"
fi

ship=/var/lib/gleaner/ship
if [ -s "$ship/host.pem" ] && [ "$(cat "$ship/collector.url" 2>/dev/null)" = "$collector" ]; then
  echo "This host is enrolled with $collector already."
else
  if [ -n "$token_file" ]; then
    if [ "$token_file" = - ]; then read -r token; else read -r token <"$token_file"; fi || [ -n "$token" ] || fail "$token_file has no token"
  fi
  [ -n "$token" ] || fail 'packages are installed; to enrol, run this again with a token that "gleaner pki token" printed'
  printf '%s\n' "$token" | runuser -u gleaner-agent -- gleaner-agent --database /var/lib/gleaner/trace.db enroll "$collector" -
fi

if [ -d /run/systemd/system ]; then
  services='gleaner-agent.service gleaner-ship.service'
  [ -z "$recruiter" ] || services="$services gleaner-memoryd.service"
  # shellcheck disable=SC2086 # several names
  systemctl enable --quiet --now $services
  # shellcheck disable=SC2086
  systemctl is-active --quiet $services || fail 'a service does not run: journalctl -u gleaner-agent -u gleaner-ship -u gleaner-memoryd'
  ! command -v gleaner >/dev/null || gleaner doctor
else
  # Without systemd nothing runs, as `gleaner doctor` would report.
  echo 'systemd does not run here: start gleaner-agent run and gleaner-agent ship yourself; then see gleaner doctor.'
fi
