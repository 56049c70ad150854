package network

// ConditionNetworkCreated of requests and its reasons, as api/v1 documents them.
const (
	ConditionNetworkCreated = "NetworkCreated"

	ReasonDefinitionCreated   = "NetworkAttachmentDefinitionCreated"
	ReasonSyncError           = "SyncError"
	ReasonDefinitionSyncError = "NetworkAttachmentDefinitionSyncError"
	ReasonDefinitionDeleted   = "NetworkAttachmentDefinitionDeleted"
	ReasonNetworkUnsupported  = "NetworkNotSupported"
)

// reasonRefused is the reason of Events about networks that users ask for.
const reasonRefused = "NetworkRefused"
