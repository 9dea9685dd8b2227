# Voice over IP on a path of six hops, for bench/programs.py, by ns-2: calls of 64 kbit/s that speak and pause, with the delay of the path
# divided evenly among its links, and cross traffic on each link. ns voice.tcl CALLS SECONDS FILE
if {$argc != 3} { puts stderr "voice.tcl CALLS SECONDS FILE"; exit 2 }
lassign $argv calls seconds file
set hops 6
set path_delay_ms 60.0
ns-random 10
set ns [new Simulator]
for {set i 0} {$i <= $hops} {incr i} { set node($i) [$ns node] }
for {set i 0} {$i < $hops} {incr i} {
  $ns duplex-link $node($i) $node([expr {$i + 1}]) [expr {$calls * 40000}] [expr {$path_delay_ms / $hops}]ms DropTail
}
proc call {from to start} {
  global ns sinks
  set agent [new Agent/UDP]
  set sink [new Agent/LossMonitor]
  $ns attach-agent $from $agent
  $ns attach-agent $to $sink
  $ns connect $agent $sink
  set source [new Application/Traffic/Exponential]
  $source set packetSize_ 200
  $source set burst_time_ 1004ms
  $source set idle_time_ 1587ms
  $source set rate_ 64k
  $source attach-agent $agent
  $ns at $start "$source start"
  lappend sinks $sink
}
for {set i 0} {$i < $calls} {incr i} {
  set start [expr {$i * 1.0 / $calls}]
  # Every third call is cross traffic of one hop.
  if {$i % 3 == 2} {
    set hop [expr {$i / 3 % $hops}]
    call $node($hop) $node([expr {$hop + 1}]) $start
  } else {
    call $node(0) $node($hops) $start
  }
}
proc finish {} {
  global sinks file
  set bytes 0
  set lost 0
  foreach sink $sinks { incr bytes [$sink set bytes_]; incr lost [$sink set nlost_] }
  set out [open $file w]
  puts $out "$bytes $lost"
  close $out
  exit 0
}
$ns at $seconds finish
$ns run
