# Controls, from the guest, a program whose memory is swapped out. Sourced by the guest's scripts.

# hog COMMAND…: starts the program with COMMAND; then sends it instructions and reads its answers.
hog() {
  coproc HOG { exec "$@"; }
  hog_pid=$HOG_PID
  # The descriptors are moved, not copied: the program ends when the last one from which it reads is
  # closed.
  exec {to_hog}>&"${HOG[1]}"- {from_hog}<&"${HOG[0]}"-
  answers filled
}
answers() { # read(1) reports the end and the timeout by its exit code
  local answer
  read -t 120 -r answer <&$from_hog && echo "hog: $answer" && [ "$answer" = "$1" ]
}
tell_hog() { echo "$1" >&$to_hog && answers "$2"; }
end_hog() {
  exec {to_hog}>&- {from_hog}<&-
  wait $hog_pid
}

used_mib() { awk -v device="/dev/$1" '$1 == device { print int($4 / 1024) }' /proc/swaps; }
