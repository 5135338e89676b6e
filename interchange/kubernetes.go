package interchange

import (
	"slices"

	"github.com/tidepool-net/tidepool/internal/topology"
)

// kubernetes writes manifests: a headless service, and for each node a ConfigMap with its .lnx file
// and a StatefulSet of one pod. The service gives each pod the stable name NETWORK-NODE-0.NETWORK.
// Nodes repeat their DNS queries, because a name resolves only while its pod runs.
func (n *Network) kubernetes() ([]topology.File, error) {
	network := naming{label: true}.fit(n.Name)
	part := fields("app.kubernetes.io/name", "tidepool", "app.kubernetes.io/part-of", network)
	manifests := []any{fields(
		"apiVersion", "v1", "kind", "Service",
		"metadata", fields("name", network, "labels", part),
		"spec", fields("clusterIP", "None", "publishNotReadyAddresses", true, "selector", part),
	)}
	files := n.files(func(node, _ int) (string, string) {
		return unspecified, network + "-" + n.names[n.Nodes[node].Name] + "-0." + network
	})
	for i, f := range files {
		name := network + "-" + f.Name
		labels := append(slices.Clip(part),
			fields("app.kubernetes.io/instance", f.Name)...)
		container := fields(
			"name", "node",
			"image", n.Image,
			"args", arguments(f.Name),
			"volumeMounts", []any{
				fields("name", "file", "mountPath", fileFolder, "readOnly", true),
				fields("name", "socket", "mountPath", socketFolder),
			},
		)
		volumes := []any{
			fields("name", "file", "configMap", fields("name", name)),
			fields("name", "socket", "emptyDir", fields("medium", "Memory")),
		}
		if hasTun(n.Nodes[i]) {
			container = append(container, fields("securityContext", fields("runAsUser", 0,
				"capabilities", fields("add", []string{"NET_ADMIN"})))...)
			container[3].Value = append(container[3].Value.([]any), fields("name", "tun",
				"mountPath", "/dev/net/tun"))
			volumes = append(volumes, fields("name", "tun", "hostPath",
				fields("path", "/dev/net/tun", "type", "CharDevice")))
		}
		manifests = append(manifests, fields(
			"apiVersion", "v1", "kind", "ConfigMap",
			"metadata", fields("name", name, "labels", labels),
			"data", fields(f.Name+".lnx", string(f.Text)),
		), fields(
			"apiVersion", "apps/v1", "kind", "StatefulSet",
			"metadata", fields("name", name, "labels", labels),
			"spec", fields("serviceName", network, "replicas", 1,
				"selector", fields("matchLabels", labels),
				"template", fields("metadata", fields("labels", labels),
					"spec", fields("containers", []any{container}, "volumes", volumes))),
		))
	}
	text, err := documents("kubectl apply -f starts the network "+network+".", manifests...)
	return []topology.File{{Name: network + ".yaml", Text: text}}, err
}
