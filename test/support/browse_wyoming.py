"""Says what Home Assistant's own library finds of Wyoming in this network: one JSON object for each change."""
import json
import sys

from zeroconf import ServiceBrowser, ServiceStateChange, Zeroconf


def changed(zeroconf, service_type, name, state_change):
    found = {'state': state_change.name, 'name': name}
    if state_change is ServiceStateChange.Added:
        info = zeroconf.get_service_info(service_type, name)
        found.update(port=info.port, addresses=info.parsed_addresses())
    print(json.dumps(found), flush=True)


browser = ServiceBrowser(Zeroconf(), '_wyoming._tcp.local.', handlers=[changed])
print(json.dumps({'state': 'Browsing'}), flush=True)
sys.stdin.read()
