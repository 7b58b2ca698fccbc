"""Says what Home Assistant's own library finds of Wyoming in this network: one JSON object for each change."""
import json
import os
import sys

from zeroconf import ServiceBrowser, ServiceStateChange, Zeroconf


def say(found):
    # At once: `print` in two threads mixes their lines.
    os.write(1, (json.dumps(found) + '\n').encode())


def changed(zeroconf, service_type, name, state_change):
    found = {'state': state_change.name, 'name': name}
    if state_change is ServiceStateChange.Added:
        info = zeroconf.get_service_info(service_type, name)
        found.update(port=info.port, addresses=info.parsed_addresses())
    say(found)


browser = ServiceBrowser(Zeroconf(), '_wyoming._tcp.local.', handlers=[changed])
say({'state': 'Browsing'})
sys.stdin.read()
