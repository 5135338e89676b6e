package main

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// processCommand runs nodes in one process, for `node net up --one-process`.
func (o *netOptions) processCommand() *cobra.Command {
	c := &cobra.Command{
		Use:    "process FOLDER FILE.lnx...",
		Short:  "run nodes in one process, with their sockets in a folder",
		Hidden: true,
		Args:   usageArgs(cobra.MinimumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return o.process(c, args[0], args[1:])
		},
	}
	c.Flags().StringVar(&o.files, "files", ".", "as for node run")
	c.Flags().StringVar(&o.user, "user", "", "as for node run")
	return c
}

// process runs daemons until a signal arrives. The last daemon to open its devices and ports drops
// the process's privileges.
func (o *netOptions) process(c *cobra.Command, folder string, paths []string) (err error) {
	ctx, stop := endBySignal(c.Context(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	log := boundLog(c.ErrOrStderr(), maxLog) // one for all nodes, because the log shortens its file
	nodes, opened := make([]*runOptions, len(paths)), make([]*operator.Node, len(paths))
	var exchange link.Exchange
	for i, path := range paths {
		r := &runOptions{daemon: true, user: o.user}
		nodes[i], r.endpoints.folder = r, o.files
		r.config.Node.Exchange = &exchange
		if err := r.prepare(path); err != nil {
			return err
		}
		r.endpoints.socket = filepath.Join(folder, r.config.LNX.Name+".sock")
	}
	if err := nodes[len(nodes)-1].findUser(); err != nil {
		return err
	}
	closers := make([]func() error, 0, len(paths))
	for i, r := range nodes {
		n, leave, err := r.open(ctx, paths[i], &messageWriter{lines: log})
		if err != nil {
			for _, leave := range closers {
				err = errors.Join(err, leave())
			}
			return err
		}
		opened[i], closers = n, append(closers, leave)
	}
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, r := range nodes {
		wg.Go(func() {
			err := r.runDaemon(ctx, opened[i], r.log.newLog(log, r.config.LNX.Name))
			errs[i] = errors.Join(err, closers[i]())
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
