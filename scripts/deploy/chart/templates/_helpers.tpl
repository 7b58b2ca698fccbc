{{- define "syrinx.name" -}}
{{- if contains "syrinx" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-syrinx" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "syrinx.selector" -}}
app.kubernetes.io/name: syrinx
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "syrinx.labels" -}}
{{ include "syrinx.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "syrinx.storeSecret" -}}
{{- if .Values.store.existingSecret }}{{ .Values.store.existingSecret }}{{ else if .Values.store.url }}{{ include "syrinx.name" . }}-store{{ end }}
{{- end }}
