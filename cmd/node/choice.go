package main

import "github.com/spf13/cobra"

// choices has Tab complete the value of a flag that is one of a few words.
func choices(c *cobra.Command, flag string, words ...cobra.Completion) {
	err := c.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("BUG: " + err.Error()) // there is no such flag
	}
}
