package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/egret-net/egret/internal/sandbox"
)

// processCommand works on the processes that a node's init keeps running.
func processCommand(o *sandbox.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "process NODE list | kill NAME | stop NAME | start NAME",
		Short: "List, kill (-9; it comes back), stop or start a process of a node",
		Args:  cobra.RangeArgs(2, 3),
		RunE: sandboxCommand(o, func(c *sandbox.Cluster, cmd *cobra.Command, args []string) error {
			if args[1] == "list" && len(args) == 2 {
				return listProcesses(cmd, c, args[0])
			}
			if len(args) != 3 {
				return fmt.Errorf("name the process: egret-sandbox process %s %s NAME", args[0], args[1])
			}
			switch ctx, node, name := cmd.Context(), args[0], args[2]; args[1] {
			case "kill":
				return c.KillProcess(ctx, node, name)
			case "stop":
				return c.StopProcess(ctx, node, name)
			case "start":
				return c.StartProcess(ctx, node, name)
			default:
				return fmt.Errorf("no operation %q: there are list, kill, stop, start", args[1])
			}
		}),
	}
}

func listProcesses(cmd *cobra.Command, c *sandbox.Cluster, node string) error {
	units, err := c.Processes(cmd.Context(), node)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tPID\tRESTARTS\tAGE\tNOTE")
	for _, u := range units {
		age := ""
		if !u.Started.IsZero() {
			age = time.Since(u.Started).Round(time.Second).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\n", u.Name, u.State, u.PID, u.Restarts, age, u.Note)
	}
	return w.Flush()
}
