# Timing analysis of the netlist of netlist.py in opensta: the slowest path.
read_liberty cells.lib
read_verilog cells.v
link_design circuit
set_operating_conditions -analysis_type single
create_clock -name clk -period 10 [get_ports clk]
report_checks -path_delay max
