package lnx_test

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

const netsFolder = "../../nets"

// folders returns the folders that contain .lnx files.
func folders(t *testing.T) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	for _, pattern := range []string{"*/*.lnx", "*/*/*.lnx"} {
		found, err := filepath.Glob(filepath.Join(netsFolder, pattern))
		require.NoError(t, err)
		for _, file := range found {
			files[filepath.Dir(file)] = append(files[filepath.Dir(file)], file)
		}
	}
	require.NotEmpty(t, files)
	return files
}

func readNetwork(t *testing.T, files []string) []*lnx.Config {
	t.Helper()
	var configs []*lnx.Config
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		cfg, err := lnx.Parse(file, text)
		require.NoError(t, err)
		assert.Empty(t, cfg.Notes)
		configs = append(configs, cfg)
	}
	return configs
}

func TestNetworksAreValid(t *testing.T) {
	for folder, files := range folders(t) {
		t.Run(strings.TrimPrefix(folder, netsFolder+"/"), func(t *testing.T) {
			assert.Empty(t, lnx.CheckNetwork(readNetwork(t, files)...))
		})
	}
}

// TestNetworksRunSideBySide checks that no two folders use the same UDP port.
func TestNetworksRunSideBySide(t *testing.T) {
	usedBy := map[uint16]string{}
	for folder, files := range folders(t) {
		for _, cfg := range readNetwork(t, files) {
			for _, iface := range cfg.Interfaces {
				if iface.Tun != nil {
					continue
				}
				before, used := usedBy[iface.UDP.Port]
				assert.True(t, !used || before == folder, "%s and %s use port %d",
					folder, before, iface.UDP.Port)
				usedBy[iface.UDP.Port] = folder
			}
		}
	}
}

// TestPicturesShowTheNetworks checks that the picture of a folder contains every node, interface,
// address and subnet as text.
func TestPicturesShowTheNetworks(t *testing.T) {
	for folder, files := range folders(t) {
		t.Run(strings.TrimPrefix(folder, netsFolder+"/"), func(t *testing.T) {
			texts := map[string]int{}
			for _, text := range svgTexts(t, filepath.Join(folder, "picture.svg")) {
				texts[text]++
			}
			for _, cfg := range readNetwork(t, files) {
				assert.Equal(t, 1, texts[cfg.Name], cfg.Name)
				for _, iface := range cfg.Interfaces {
					for _, p := range iface.Addrs() {
						addr := p.Addr().String()
						assert.Equal(t, 1, texts[addr], addr)
					}
					socket := fmt.Sprintf("%s :%d", iface.Name, iface.UDP.Port)
					if iface.Tun != nil {
						socket = fmt.Sprintf("%s tun:%s", iface.Name, iface.Tun.Device)
						for _, a := range iface.Tun.Kernel {
							assert.Equal(t, 1, texts[a.String()], "the kernel's end")
						}
					}
					assert.Positive(t, texts[socket], socket)
					if cfg.Grammar == lnx.GrammarNew {
						subnet := iface.Addrs()[0].Masked().String()
						assert.Equal(t, 1, texts[subnet], subnet)
					}
				}
			}
		})
	}
}

// svgTexts returns the contents of the text elements in a picture.
func svgTexts(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var picture struct {
		Title string   `xml:"title"`
		Texts []string `xml:"text"`
	}
	require.NoError(t, xml.Unmarshal(content, &picture))
	assert.NotEmpty(t, picture.Title)
	for i, text := range picture.Texts {
		picture.Texts[i] = strings.Join(strings.Fields(text), " ")
	}
	return picture.Texts
}

// TestFoldersAreDescribed checks that every folder has a README with its picture, and that the
// index lists the folder with its ports.
func TestFoldersAreDescribed(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(netsFolder, "README.md"))
	require.NoError(t, err)
	for folder, files := range folders(t) {
		name := strings.TrimPrefix(folder, netsFolder+"/")
		readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
		require.NoError(t, err)
		assert.Contains(t, string(readme), "(picture.svg)", name)
		assert.Contains(t, string(readme), "node run nets/"+name+"/", name)
		first, last := ^uint16(0), uint16(0)
		for _, cfg := range readNetwork(t, files) {
			for _, iface := range cfg.Interfaces {
				if iface.Tun != nil {
					continue
				}
				first, last = min(first, iface.UDP.Port), max(last, iface.UDP.Port)
			}
		}
		row := fmt.Sprintf("| [%s](%s/) |", name, name)
		assert.Contains(t, string(index), row)
		assert.Contains(t, string(index), fmt.Sprintf("| %d–%d |", first, last), name)
	}
}

// TestFormatIsDescribed checks that the page about the files describes every directive.
func TestFormatIsDescribed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(netsFolder, "FORMAT.md"))
	require.NoError(t, err)
	for _, name := range lnx.DirectiveNames() {
		assert.Contains(t, string(page), "| `"+name+" ")
	}
	for _, usage := range lnx.Usages() {
		assert.Contains(t, string(page), "| `"+usage+"` |")
	}
	for _, key := range lnx.LinkKeys() {
		assert.Contains(t, string(page), "`"+key)
	}
}
