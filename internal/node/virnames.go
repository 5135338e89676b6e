package node

import "github.com/tidepool-net/tidepool/internal/stack"

// VirError is one of the exceptions of founding document 004 §5.6.
type VirError = stack.VirError

// VirHow is the type of a Vir.ShutDown.
type VirHow = stack.How
