# A program whose memory is swapped out, told from the guest what to do. Sourced.

# hog COMMAND…: the command is that program; then what it is to do, and its answer.
hog() {
  coproc HOG { exec "$@"; }
  hog_pid=$HOG_PID
  # Moved, not copied: it ends when the last of them that it reads from is closed.
  exec {to_hog}>&"${HOG[1]}"- {from_hog}<&"${HOG[0]}"-
  answers filled
}
answers() { # read(1) tells of the end and of the time-out by its status
  local answer
  read -t 120 -r answer <&$from_hog && echo "hog: $answer" && [ "$answer" = "$1" ]
}
tell_hog() { echo "$1" >&$to_hog && answers "$2"; }
end_hog() {
  exec {to_hog}>&- {from_hog}<&-
  wait $hog_pid
}

used_mib() { awk -v device="/dev/$1" '$1 == device { print int($4 / 1024) }' /proc/swaps; }
