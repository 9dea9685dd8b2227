// Replays a platform in SimGrid and prints its hosts' events: "state TIME HOST 0|1" whenever one went on or off, and
// "share TIME HOST SHARE" whenever its speed changed; at the end "host NAME SPEED CORES PROPERTY=VALUE...".
//
//   replay PLATFORM.xml SECONDS
#include <cstdio>
#include <simgrid/s4u.hpp>
#include <string>
#include <xbt/config.hpp>

namespace sg4 = simgrid::s4u;

int main(int argc, char* argv[])
{
  sg4::Engine engine(&argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "replay PLATFORM.xml SECONDS\n");
    return 2;
  }
  sg4::Host::on_state_change.connect([](const sg4::Host& host) {
    std::printf("state %.3f %s %d\n", sg4::Engine::get_clock(), host.get_cname(), host.is_on() ? 1 : 0);
  });
  sg4::Host::on_speed_change.connect([](const sg4::Host& host) {
    std::printf("share %.3f %s %.6f\n", sg4::Engine::get_clock(), host.get_cname(), host.get_available_speed());
  });
  engine.load_platform(argv[1]);
  for (auto const* host : engine.get_all_hosts()) {
    std::printf("host %s %.0f %d", host->get_cname(), host->get_speed(), host->get_core_count());
    for (auto const& [name, value] : *host->get_properties())
      std::printf("\t%s=%s", name.c_str(), value.c_str());
    std::printf("\n");
  }
  engine.run_until(std::stod(argv[2]));
  return 0;
}
