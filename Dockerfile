# syntax=docker/dockerfile:1
# Two images: `docker build .` runs models on the CPU, `docker build --target cuda .` on NVIDIA GPUs. See docs/deploy.md.
ARG GO_VERSION=1.26
ARG CUDA_IMAGE=nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04

FROM golang:${GO_VERSION}-bookworm AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /src
# The library comes first: it changes with releases of ONNX Runtime only. The script compares its checksum.
COPY tools/fetch-onnxruntime.sh tools/
ARG NPM_REGISTRY=https://registry.npmjs.org
RUN tools/fetch-onnxruntime.sh /opt/onnxruntime/lib
# bench is not copied, so there is no workspace.
ENV GOWORK=off
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/signalbox . \
 && /out/signalbox version

# ONNX Runtime with its provider libraries, which have to lie beside the core library.
FROM debian:12-slim AS onnxruntime-gpu
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
ARG ORT_VERSION=1.30.0
ARG CUDA_MAJOR=13
# The sha256 of onnxruntime-linux-x64-gpu_cuda<major>-<version>.tgz, from the release's page. Required.
ARG ORT_GPU_SHA256
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates curl && rm -rf /var/lib/apt/lists/*
WORKDIR /work
RUN name=onnxruntime-linux-x64-gpu_cuda${CUDA_MAJOR}-${ORT_VERSION} \
 && curl --fail --silent --show-error --location --proto '=https' --retry 2 --output ort.tgz \
      "https://github.com/microsoft/onnxruntime/releases/download/v${ORT_VERSION}/${name}.tgz" \
 && echo "${ORT_GPU_SHA256:?set the build argument ORT_GPU_SHA256 to the checksum of ${name}.tgz}  ort.tgz" | sha256sum --check --strict \
 && mkdir -p /opt/onnxruntime/lib \
 && tar -xzf ort.tgz --strip-components=2 --directory /opt/onnxruntime/lib --wildcards '*/lib/libonnxruntime.so*' '*/lib/libonnxruntime_providers_shared.so' '*/lib/libonnxruntime_providers_cuda.so' \
 && rm ort.tgz

FROM ${CUDA_IMAGE} AS cuda
COPY --from=onnxruntime-gpu /opt/onnxruntime/lib/ /opt/onnxruntime/lib/
COPY --from=build /out/signalbox /usr/local/bin/signalbox
COPY configs/minimal.yaml /etc/signalbox/signalbox.yaml
# Models that `signalbox models pull` fetches, and engines that providers compile, belong in a volume.
ENV SIGNALBOX_ONNXRUNTIME=/opt/onnxruntime/lib XDG_CACHE_HOME=/var/cache
VOLUME /var/cache/signalbox
USER 65532:65532
EXPOSE 8080 9090
ENTRYPOINT ["/usr/local/bin/signalbox"]
CMD ["serve", "--config", "/etc/signalbox/signalbox.yaml", "--listen", "0.0.0.0:8080", "--admin-listen", "0.0.0.0:9090"]

FROM gcr.io/distroless/cc-debian12:nonroot AS cpu
COPY --from=build /opt/onnxruntime/lib/ /opt/onnxruntime/lib/
COPY --from=build /out/signalbox /usr/local/bin/signalbox
COPY configs/minimal.yaml /etc/signalbox/signalbox.yaml
ENV SIGNALBOX_ONNXRUNTIME=/opt/onnxruntime/lib
USER 65532:65532
EXPOSE 8080 9090
ENTRYPOINT ["/usr/local/bin/signalbox"]
CMD ["serve", "--config", "/etc/signalbox/signalbox.yaml", "--listen", "0.0.0.0:8080", "--admin-listen", "0.0.0.0:9090"]
