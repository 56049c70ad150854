package traffic

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SenderPod is a pod whose only program sends from its first instruction on, by the name of the pod, and that stays
// when its node is away. Nothing schedules it.
func SenderPod(namespace, name, node string, labels map[string]string, to []string) *corev1.Pod {
	no, now := false, int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			TerminationGracePeriodSeconds: &now,
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "main", Image: "localhost/pause:1", ImagePullPolicy: corev1.PullNever,
				Command:      append([]string{Sender, name}, to...),
				VolumeMounts: []corev1.VolumeMount{{Name: "tools", MountPath: Dir, ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "tools",
				VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: Dir}}}},
		},
	}
}
