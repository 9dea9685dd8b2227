# Results as TAP, and waits for conditions. Sourced by the guest's scripts.
number=0

until_true() { # until_true SECONDS COMMAND…: waits for a condition
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.2
  done
}

passes() { # passes NAME COMMAND…
  number=$((number + 1))
  local name=$1 begin=$SECONDS
  shift
  if "$@" >said 2>&1; then
    grep '^# ' said
    echo "ok $number - $name # $((SECONDS - begin)) s"
  else
    tail -n 30 said | sed 's/^/# /'
    echo "not ok $number - $name"
    { cat /proc/swaps; free -m; dmesg --notime | tail -n 20; } | sed 's/^/# /'
  fi
}

kernel_options() { # kernel_options NAME…: prints options of the guest's kernel
  local name
  for name in "$@"; do
    echo "# Linux $(uname -r): $(grep -E "CONFIG_$name[ =]" "/boot/config-$(uname -r)" || echo "no CONFIG_$name")"
  done
}
