package lab

import (
	"cmp"
	"embed"
	"path"
	"slices"
	"strconv"
	"strings"
)

// presetFiles are the built-in experiments, with a folder for each group. The line "about: …" of a
// file is its description in lists.
//
//go:embed presets
var presetFiles embed.FS

// presetGroups are the folders of preset files with their titles, in the order of the list.
var presetGroups = []PresetGroup{
	{Folder: "basics", Title: "Congestion control"},
	{Folder: "fence", Title: "The sliding fence (founding document 000)"},
	{Folder: "notebook", Title: "The congestion-control notebook (founding document 002)"},
	{Folder: "objects", Title: "Reliable data transfer (founding document 003)"},
	{Folder: "course", Title: "Files between a course's nodes (founding documents 001 and 004)"},
	{Folder: "pantheon", Title: "Pantheon's emulated paths (Yan et al. 2018)"},
	{Folder: "rmcat", Title: "The schedules of RFC 8867"},
	{Folder: "checks", Title: "Against theory (node lab check)"},
}

// PresetGroup is a group of presets.
type PresetGroup struct {
	Folder, Title string
	Presets       []Preset
}

// Preset is a built-in experiment.
type Preset struct {
	Name string
	// About describes it in one line.
	About string
	// Text is the experiment file.
	Text []byte
}

// PresetGroups returns the presets in the order of the list.
func PresetGroups() []PresetGroup {
	out := slices.Clone(presetGroups)
	for i := range out {
		folder := path.Join("presets", out[i].Folder)
		entries, err := presetFiles.ReadDir(folder)
		if err != nil {
			panic("BUG: preset: " + err.Error())
		}
		for _, e := range entries {
			text, err := presetFiles.ReadFile(path.Join(folder, e.Name()))
			if err != nil {
				panic("BUG: preset: " + err.Error())
			}
			out[i].Presets = append(out[i].Presets, Preset{
				Name: strings.TrimSuffix(e.Name(), ".yaml"), About: aboutOf(text), Text: text,
			})
		}
		slices.SortFunc(out[i].Presets, byNumber)
	}
	return out
}

// byNumber compares names. It compares a number after the last hyphen by its value.
func byNumber(a, b Preset) int {
	head := func(s string) (text string, number int) {
		i := strings.LastIndexByte(s, '-') + 1
		n, err := strconv.Atoi(s[i:])
		if err != nil {
			return s, 0
		}
		return s[:i], n
	}
	textA, numberA := head(a.Name)
	textB, numberB := head(b.Name)
	return cmp.Or(cmp.Compare(textA, textB), numberA-numberB)
}

func aboutOf(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if said, ok := strings.CutPrefix(line, "about:"); ok {
			return strings.TrimSpace(said)
		}
	}
	return ""
}

func presets() (all []Preset) {
	for _, g := range PresetGroups() {
		all = append(all, g.Presets...)
	}
	return all
}

// FindPreset returns the preset with that name.
func FindPreset(name string) (Preset, bool) {
	for _, p := range presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

// PresetNames returns the names of all presets, in the order of the list.
func PresetNames() []string {
	var names []string
	for _, p := range presets() {
		names = append(names, p.Name)
	}
	return names
}

// PresetFamily returns the names with a prefix, in the order of the list. A star at the end of the
// prefix is ignored.
func PresetFamily(text string) []string {
	text = strings.TrimSuffix(text, "*")
	return slices.DeleteFunc(PresetNames(), func(name string) bool {
		return text == "" || !strings.HasPrefix(name, text)
	})
}

// PresetFamilies returns the prefixes that several names have in common, in the order of the list.
func PresetFamilies() []string {
	var out []string
	count := map[string]int{}
	for _, name := range PresetNames() {
		word, _, _ := strings.Cut(name, "-")
		if count[word]++; count[word] == 2 {
			out = append(out, word)
		}
	}
	return out
}
