package playground

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
	"github.com/tidepool-net/tidepool/internal/topology"
)

// marker is the line in front of an .lnx file in the text of a network.
var marker = regexp.MustCompile(`(?m)^-- (.*)\.lnx --[ \t\r]*$`)

// Check returns the errors of a network. The network is a .net file, or several .lnx files, each
// after a line `-- NAME.lnx --`. If the name ends with .star, the text is a congestion control in
// Starlark. Errors with a position are diagnostic.Errors, with the lines of the whole text.
func Check(name, text string) error {
	if strings.HasSuffix(name, scriptSuffix) {
		_, err := starlark.Compile(name, []byte(text), nil)
		return places(err)
	}
	_, err := parse(name, text, false)
	return err
}

func parse(name, text string, joined bool) (list []*lnx.Config, err error) {
	if marker.MatchString(text) {
		list, err = several(name, text)
	} else {
		list, err = planned(name, text)
	}
	if err != nil {
		return nil, err
	}
	if joined && len(list) != 1 {
		return nil, fmt.Errorf("%s has %d nodes: a page joins as one node", name, len(list))
	}
	for _, c := range list {
		if len(c.Forwards) > 0 {
			return nil, fmt.Errorf("%s: a browser has no real sockets: remove `%s` from %s.lnx",
				name, &c.Forwards[0], c.Name)
		}
	}
	for _, e := range topology.From(name, list).Links {
		first := list[e.Ends[0].Node].Name + "'s " + e.Ends[0].Iface
		switch {
		case e.Ends[0].Note != "":
			return nil, fmt.Errorf("%s: a page has no TUN devices: remove %s", name, first)
		case len(e.Ends) != 2 && !joined:
			return nil, fmt.Errorf("%s: the link of %s has %d ends; must have 2", name,
				first, len(e.Ends))
		}
	}
	return list, nil
}

// planned returns the .lnx files that a .net file describes.
func planned(name, text string) (list []*lnx.Config, err error) {
	plan, err := topology.Parse(name, []byte(text), operator.CheckWords)
	if err != nil {
		return nil, err
	}
	if len(plan.Machines) > 0 {
		m := plan.Machines[0]
		return nil, fmt.Errorf("%s: a page cannot reach other machines: remove `host %s ssh %s`",
			name, m.Name, m.SSH)
	}
	if plan.NamesAt == "" {
		plan.NamesAt = topology.NoNames
	}
	made, err := plan.Files()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, f := range made {
		c, err := lnx.Parse(f.Name+".lnx", f.Text)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// several returns the files of a text with markers.
func several(name, text string) (list []*lnx.Config, err error) {
	var all diagnostic.Errors
	begin := map[string]int{} // number of lines before a file, by the file's name
	found := marker.FindAllStringSubmatchIndex(text, -1)
	if strings.TrimSpace(text[:found[0][0]]) != "" {
		all = append(all, &diagnostic.Error{
			File: name, Line: 1, Msg: "this text is before the first file", Want: "-- NAME.lnx --",
		})
	}
	for i, m := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		node := text[m[2]:m[3]]
		file, before := node+".lnx", strings.Count(text[:m[1]], "\n")
		wrong := ""
		if _, again := begin[file]; again {
			wrong = file + " is in the network already"
		} else if !topology.IsName(node) {
			wrong = diagnostic.Quote(node) + " cannot name a node"
		}
		if wrong != "" {
			all = append(all, &diagnostic.Error{
				File: name, Line: before + 1, Msg: wrong, Want: "another name",
			})
			continue
		}
		begin[file] = before
		// the text from the end of the marker's line on
		c, err := lnx.Parse(file, []byte(text[m[1]:end]))
		if errs, ok := errors.AsType[diagnostic.Errors](err); ok {
			all = append(all, errs...)
		} else if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if len(all) == 0 {
		for _, e := range lnx.CheckNetwork(list...) {
			if !e.Note {
				all = append(all, e)
			}
		}
	}
	for _, e := range all {
		if e.Line > 0 {
			e.Line += begin[e.File]
		}
	}
	return list, all.Err()
}
