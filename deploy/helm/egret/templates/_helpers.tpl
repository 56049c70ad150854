{{- define "egret.image" -}}
{{- with .Values.image }}
{{- .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default ($.Chart.AppVersion | replace "+" "_") }}{{ end }}
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

{{- /* Fails if ranges of the cluster have no room, or overlap, or if pods lack the family of Services, or if the MTU is too small for pods:
     as package settings, by which programs refuse the same. Keys without a value have the programs' defaults. */}}
{{- define "egret.checkRanges" }}
{{- $given := dict
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
{{- $ranges := list
  (dict "name" "254.0.0.0/8, which is fixed," "bits" (include "egret.bits" "254.0.0.0/8"))
  (dict "name" "fd96:1000::/25, which is fixed," "bits" (include "egret.bits" "fd96:1000::/25")) }}
{{- range $key, $default := $given }}
  {{- $_ := set $given $key (get $.Values.settings $key | default $default) }}
  {{- range splitList "," (get $given $key) }}
    {{- $range := dict "name" (printf "settings.%s %s" $key .) "bits" (include "egret.bits" .) }}
    {{- include "egret.checkRoom" (list $key .) }}
    {{- range $ranges }}
      {{- if or (hasPrefix .bits $range.bits) (hasPrefix $range.bits .bits) }}
        {{- fail (printf "%s and %s overlap: give %s outside the other" .name $range.name $key) }}
      {{- end }}
    {{- end }}
    {{- $ranges = append $ranges $range }}
  {{- end }}
{{- end }}
{{- range splitList "," $given.SERVICE_SUBNETS }}
  {{- if not (contains (contains ":" . | ternary ":" ".") $given.CLUSTER_SUBNETS) }}
    {{- fail (printf "settings.SERVICE_SUBNETS %s is of a family that settings.CLUSTER_SUBNETS %s lacks: give both the same" . $given.CLUSTER_SUBNETS) }}
  {{- end }}
{{- end }}
{{- $least := contains ":" $given.CLUSTER_SUBNETS | ternary "IPv6 1280 (RFC 8200)" "IPv4 576 (RFC 1122)" }}
{{- with .Values.settings.MTU | int }}
  {{- if lt . (index (splitList " " $least) 1 | int) }}
    {{- fail (printf "settings.MTU %d: give as many bytes as each link is to carry, of %s, or 0 for what the nodes' links carry" . $least) }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* Fails if a key's range is too small: for one node with a pod, for the nodes of a cluster, or for EgressIPs with several addresses. */}}
{{- define "egret.checkRoom" }}
{{- $key := index . 0 }}
{{- $parts := splitList "/" (index . 1) }}
{{- $v6 := contains ":" (index $parts 0) }}
{{- $length := index $parts 1 | int }}
{{- $room := get (dict "CLUSTER_SUBNETS" 3 "JOIN_SUBNET" 16 "TRANSIT_SUBNET" 16 "MASQUERADE_SUBNET" 3) (regexReplaceAll "_V[46]$" $key "") | default 0 }}
{{- $most := sub (ternary 128 32 $v6) $room | int }}
{{- $node := index (append $parts (ternary "64" "24" $v6)) 2 | int }}
{{- if and (hasPrefix "SLOT" $key) (ne $length (ternary 29 13 $v6)) }}
  {{- fail (printf "settings.%s %s: give a range of /%d" $key (index . 1) (ternary 29 13 $v6)) }}
{{- else if gt $length $most }}
  {{- fail (printf "settings.%s %s is too small: give a range of /%d or less" $key (index . 1) $most) }}
{{- else if and (eq $key "CLUSTER_SUBNETS") (or (lt $node $length) (gt $node $most)) }}
  {{- fail (printf "settings.%s %s has no room for a node's part of /%d: give parts of /%d to /%d" $key (index . 1) $node $length $most) }}
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
