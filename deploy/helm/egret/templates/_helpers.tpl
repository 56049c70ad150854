{{- define "egret.image" -}}
{{- with .Values.image }}
{{- .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* How many controllers there are: one where one node is the whole cluster, if Helm asks the cluster. A control plane that has no other
     pods, as kubeadm makes it, is about to get nodes. */}}
{{- define "egret.controllers" -}}
{{- $nodes := (lookup "v1" "Node" "" "").items | default list }}
{{- if ne (len $nodes) 1 }}{{ .Values.controller.replicas }}
{{- else if contains "node-role.kubernetes.io/control-plane" (dig "spec" "taints" list (first $nodes) | toJson) }}{{ .Values.controller.replicas }}
{{- else }}1{{ end }}
{{- end }}

{{- /* Fails if two ranges of the cluster overlap. Keys without a value have the programs' defaults. */}}
{{- define "egret.checkRanges" }}
{{- $ranges := list
  (dict "name" "254.0.0.0/8, which is fixed," "bits" (include "egret.bits" "254.0.0.0/8"))
  (dict "name" "fd96:1000::/25, which is fixed," "bits" (include "egret.bits" "fd96:1000::/25")) }}
{{- range $key, $default := dict
  "CLUSTER_SUBNETS" "10.244.0.0/16/24"
  "SERVICE_SUBNETS" "10.96.0.0/16"
  "JOIN_SUBNET_V4" "100.64.0.0/16"
  "JOIN_SUBNET_V6" "fd98::/64"
  "TRANSIT_SUBNET_V4" "100.88.0.0/16"
  "TRANSIT_SUBNET_V6" "fd97::/64"
  "SLOT_SUBNET_V4" "100.96.0.0/13"
  "SLOT_SUBNET_V6" "fd96:8::/29"
  "MASQUERADE_SUBNET_V4" "169.254.169.0/29"
  "MASQUERADE_SUBNET_V6" "fd69::/125" }}
  {{- range splitList "," (get $.Values.settings $key | default $default) }}
    {{- $range := dict "name" (printf "settings.%s %s" $key .) "bits" (include "egret.bits" .) }}
    {{- range $ranges }}
      {{- if or (hasPrefix .bits $range.bits) (hasPrefix $range.bits .bits) }}
        {{- fail (printf "%s and %s overlap: give %s outside the other" .name $range.name $key) }}
      {{- end }}
    {{- end }}
    {{- $ranges = append $ranges $range }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* The family of a range such as 10.244.0.0/16/24 or fd98::/64, and the bits that all its addresses begin with. */}}
{{- define "egret.bits" }}
{{- $parts := splitList "/" . }}
{{- $address := index $parts 0 }}
{{- $bits := "" }}
{{- if contains ":" $address }}
  {{- $halves := append (splitList "::" $address) "" }}
  {{- $left := splitList ":" (index $halves 0) | compact }}
  {{- $right := splitList ":" (index $halves 1) | compact }}
  {{- $zeros := sub 8 (add (len $left) (len $right)) | int }}
  {{- range concat $left (splitList "," (repeat $zeros "0,") | compact) $right }}
    {{- $bits = printf "%s%016b" $bits (int64 (printf "0x%s" .)) }}
  {{- end }}
{{- else }}
  {{- range splitList "." $address }}
    {{- $bits = printf "%s%08b" $bits (int64 .) }}
  {{- end }}
{{- end }}
{{- printf "%d %s" (len $bits) (substr 0 (index $parts 1 | int) $bits) }}
{{- end }}
