module github.com/etcdkit/etcdkit/internal/kube/gen

go 1.26

require k8s.io/kubernetes v1.37.2
