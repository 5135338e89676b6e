package play

import (
	"github.com/tidepool-net/tidepool/internal/lab/plan"
)

// Label is what the flow is an instance of: what differs in it from others of its kind.
func Label(f *plan.Flow) string {
	app := &f.App
	switch {
	case app.Echo != nil && f.Protocol == plan.RCP:
		return fenceLabel(app.Echo.RCP.Window)
	case app.Burst != nil:
		return fenceLabel(app.Burst.RCP.Window)
	case app.Objects != nil && f.Protocol != plan.QUIC:
		return app.Objects.Arm.String()
	case app.Notebook != nil && app.Notebook.Fixed > 0:
		return "notebook fixed"
	case app.Notebook != nil:
		return "notebook tahoe"
	case f.Protocol != plan.TCP:
		return string(f.Protocol)
	}
	return algorithm(f)
}

// fenceLabel is what founding document 000 compares.
func fenceLabel(window bool) string {
	if window {
		return "window"
	}
	return "fence"
}
