package interchange

import (
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/tidepool-net/tidepool/internal/topology"
)

// compose writes a file of the Compose Specification: a service for each node, with a fixed address
// in the only network. The node's .lnx file is a config with inline content (Docker Compose
// 2.23.1).
func (n *Network) compose() ([]topology.File, error) {
	addrs, err := n.perNode()
	if err != nil {
		return nil, err
	}
	var services, configs yaml.MapSlice
	files := n.files(func(node, _ int) (string, string) { return addrs[node], addrs[node] })
	for i, f := range files {
		service := fields(
			"image", n.Image,
			"command", arguments(f.Name),
			"configs", []any{fields("source", f.Name, "target", fileFolder+"/"+f.Name+".lnx")},
			"tmpfs", []string{socketFolder},
			"networks", fields("links", fields("ipv4_address", addrs[i])),
		)
		if hasTun(n.Nodes[i]) {
			service = append(service, fields("user", "0", "cap_add", []string{"NET_ADMIN"},
				"devices", []string{"/dev/net/tun"})...)
		}
		services = append(services, fields(f.Name, service)...)
		// Compose would replace $NAME by a variable.
		text := strings.ReplaceAll(string(f.Text), "$", "$$")
		configs = append(configs, fields(f.Name, fields("content", text))...)
	}
	network, subnet := naming{label: true}.fit(n.Name), fields("subnet", n.Subnet.String())
	text, err := documents("docker compose up starts the network "+network+".", fields(
		"name", network,
		"services", services,
		"networks", fields("links", fields("ipam", fields("config", []any{subnet}))),
		"configs", configs,
	))
	return []topology.File{{Name: "compose.yaml", Text: text}}, err
}
