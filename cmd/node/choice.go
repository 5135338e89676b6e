package main

import "github.com/spf13/cobra"

func choices(c *cobra.Command, flag string, words ...cobra.Completion) {
	err := c.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("BUG: " + err.Error()) // the flag does not exist
	}
}

func completing(names func() []string, d cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return names(), d
	}
}
