# The image of plumb. `cargo xtask image --context-only` makes the folder that it is built in:
#
#   docker build -f Dockerfile target/image/context        (or podman, or buildah)
#
# The folder has root.tar, a small Debian with git, ssh, gpg and tini (tools/image/root.sh), and bin/, with plumb, helm
# and kustomize. So no base image has to be trusted or pulled, and the same folder gives the same digest.
FROM scratch
ADD root.tar /
COPY bin/ /usr/local/bin/

ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="plumb" \
      org.opencontainers.image.description="A GitOps engine in which OutOfSync means that something is wrong." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

ENV HOME=/home/plumb \
    PATH=/usr/local/bin:/usr/bin:/bin
# Nobody's group and user: Kubernetes needs the number to know that it is not root.
USER 65532:65532
WORKDIR /home/plumb
EXPOSE 8080 8082
# The first process of a container adopts the children of processes that ended, such as the helpers of a git that was
# stopped. tini waits for them, and passes signals on.
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/plumb"]
CMD ["run"]
