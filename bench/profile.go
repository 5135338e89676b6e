//go:build linux

package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"time"

	"github.com/tidepool-net/tidepool/bench/flame"
	"github.com/tidepool-net/tidepool/bench/lead"
	"github.com/tidepool-net/tidepool/bench/report"
)

// profileFor is the duration of a profiled stream; it yields 1200 samples per core.
const profileFor = 12 * time.Second

// profileCommand profiles a stream and prints where the CPU time was spent.
func profileCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("profile", flag.ContinueOnError)
	folder := flags.String("out", ".", "write the flame graphs to `FOLDER`")
	if err := parse(flags, args); err != nil {
		return err
	}
	s := &session{turns: lead.Turns{Log: os.Stderr}, span: profileFor, out: os.Stdout}
	r := &report.Report{}
	if err := s.profiles(ctx, r, *folder); err != nil {
		return err
	}
	return report.WriteProfiles(os.Stdout, r.Profiles)
}

// profiles measures both ends of a clean stream, and a router.
func (s *session) profiles(ctx context.Context, r *report.Report, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tidepool-profile-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, p := range []struct {
		path  lead.Path
		ends  []string
		title string
	}{
		{direct, []string{"send", "receive"}, "one stream, two nodes on a link: "},
		{ourRouter, []string{"router"}, "one stream through a router: "},
	} {
		stream := s.stream("tidepool", "", p.path)
		stream.For = profileFor
		stream.Profile = filepath.Join(dir, "cpu")
		if _, err := stream.Run(ctx); err != nil {
			return err
		}
		for _, end := range p.ends {
			one, err := flame.Read(stream.Profile + "." + end)
			if err != nil {
				return err
			}
			name := "flame-" + end + ".svg"
			f, err := os.Create(filepath.Join(folder, name))
			if err != nil {
				return err
			}
			if err := one.WriteSVG(f, p.title+end); err != nil {
				return err
			}
			if err := f.Close(); err != nil {
				return err
			}
			r.Profiles = append(r.Profiles, report.Profiled{
				Name: end, File: name, Packages: report.Most(one.Packages(), 12),
				Functions: report.Most(one.Functions(), 15),
			})
		}
	}
	return nil
}
