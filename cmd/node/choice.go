package main

import "github.com/spf13/cobra"

func completing(names func() []string, d cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return names(), d
	}
}
