// Package grpctest has gRPC's own client call gRPC's own server through a peer. It is a module
// of its own, so that nobody inherits its dependencies.
package grpctest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// A server answers calls, and says on ended how the contexts of those that wait for their end ended.
type server struct {
	pb.UnimplementedTestServiceServer
	ended chan error
}

// UnaryCall returns as many bytes as it was asked for, with the client's metadata in header and
// trailer, or the wanted status with a detail. For the metadata "wait" it waits until the client
// gives up.
func (s *server) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if len(md["wait"]) > 0 {
		<-ctx.Done()
		s.ended <- ctx.Err()
		return nil, ctx.Err()
	}
	if len(md["in-header"]) > 0 {
		grpc.SetHeader(ctx, metadata.Pairs("x-header", md["in-header"][0], "x-bin", string([]byte{0, 255})))
	}
	grpc.SetTrailer(ctx, metadata.Pairs("x-trailer", "the trailer"))
	if st := in.GetResponseStatus(); st.GetCode() != 0 {
		failed, err := status.New(codes.Code(st.Code), st.Message).WithDetails(&pb.EchoStatus{Code: 7, Message: "a detail"})
		if err != nil {
			return nil, err
		}
		return nil, failed.Err()
	}
	return &pb.SimpleResponse{Payload: payload(int(in.ResponseSize)), Username: fmt.Sprint(len(in.GetPayload().GetBody()))}, nil
}

// StreamingOutputCall sends the wanted messages, and then the wanted status.
func (s *server) StreamingOutputCall(in *pb.StreamingOutputCallRequest, out grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	for _, p := range in.ResponseParameters {
		if err := out.Send(&pb.StreamingOutputCallResponse{Payload: payload(int(p.Size))}); err != nil {
			return err
		}
	}
	return status.Error(codes.Code(in.GetResponseStatus().GetCode()), in.GetResponseStatus().GetMessage())
}

// StreamingInputCall counts the bytes of all messages.
func (s *server) StreamingInputCall(in grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
	var sum int32
	for {
		m, err := in.Recv()
		if err == io.EOF {
			return in.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: sum})
		} else if err != nil {
			return err
		}
		sum += int32(len(m.GetPayload().GetBody()))
	}
}

// FullDuplexCall sends its header at once, and then answers each message with one of the wanted
// length. It ends before the client does after a message that wants none.
func (s *server) FullDuplexCall(both grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	both.SendHeader(metadata.Pairs("x-header", "first"))
	both.SetTrailer(metadata.Pairs("x-trailer", "last"))
	for {
		m, err := both.Recv()
		if err == io.EOF {
			return nil
		} else if err != nil {
			s.ended <- both.Context().Err()
			return err
		}
		if len(m.ResponseParameters) == 0 {
			return status.Error(codes.ResourceExhausted, "enough")
		}
		for _, p := range m.ResponseParameters {
			if err := both.Send(&pb.StreamingOutputCallResponse{Payload: payload(int(p.Size))}); err != nil {
				return err
			}
		}
	}
}

func payload(n int) *pb.Payload { return &pb.Payload{Body: bytes.Repeat([]byte{'x'}, n)} }

// TestCalls makes every kind of call through a peer, by TLS and without.
func TestCalls(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "peer")
	build := exec.Command("go", "build", "-o", binary, "./cmd/peer")
	build.Dir = "../../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cert, certFile, keyFile := certificate(t)
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "prior knowledge", true: "TLS"}[secure], func(t *testing.T) {
			s := &server{ended: make(chan error, 1)}
			var opts []grpc.ServerOption
			if secure {
				opts = append(opts, grpc.Creds(credentials.NewServerTLSFromCert(&cert)))
			}
			g := grpc.NewServer(opts...)
			pb.RegisterTestServiceServer(g, s)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go g.Serve(l)
			defer g.Stop()

			args := []string{"--origin", "h2c://" + l.Addr().String()}
			creds := insecure.NewCredentials()
			if secure {
				file := filepath.Join(t.TempDir(), "peer.yaml")
				text := fmt.Sprintf("sites:\n  - origins: [https://%s]\n    ca: %s\n", l.Addr(), certFile)
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				args = []string{"--config", file, "--https", "127.0.0.1:0", "--https-cert", certFile, "--https-key", keyFile}
				pool := x509.NewCertPool()
				pool.AddCert(cert.Leaf)
				creds = credentials.NewClientTLSFromCert(pool, "")
			}
			p := run(t, binary, args...)
			at := p.listen
			if secure {
				at = p.https
			}
			conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(creds))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			calls(t, pb.NewTestServiceClient(conn), s)
			var text bytes.Buffer
			resp, err := http.Get("http://" + p.admin + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text.ReadFrom(resp.Body)
			for _, want := range []string{"\npeer_origin_errors_total 0\n", "\npeer_origins_failing 0\n"} {
				if !strings.Contains(text.String(), want) {
					t.Errorf("the metrics have no %q", want)
				}
			}
		})
	}
}

func calls(t *testing.T, client pb.TestServiceClient, s *server) {
	call := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	t.Run("unary", func(t *testing.T) {
		for _, n := range []int{0, 1, 100_000, 3 << 20} {
			got, err := client.UnaryCall(call(t), &pb.SimpleRequest{ResponseSize: int32(n), Payload: payload(n)})
			if err != nil || len(got.GetPayload().GetBody()) != n || got.Username != fmt.Sprint(n) {
				t.Errorf("UnaryCall(%d) = %d bytes, %q, %v", n, len(got.GetPayload().GetBody()), got.GetUsername(), err)
			}
		}
	})
	t.Run("metadata", func(t *testing.T) {
		var header, trailer metadata.MD
		_, err := client.UnaryCall(metadata.AppendToOutgoingContext(call(t), "in-header", "a value"), &pb.SimpleRequest{}, grpc.Header(&header), grpc.Trailer(&trailer))
		if err != nil || fmt.Sprintf("%q %q", header["x-header"], header["x-bin"]) != `["a value"] ["\x00\xff"]` || fmt.Sprint(trailer["x-trailer"]) != "[the trailer]" {
			t.Errorf("header %v, trailer %v, %v", header, trailer, err)
		}
	})
	t.Run("status", func(t *testing.T) { // without a message: its header is also its end
		var trailer metadata.MD
		_, err := client.UnaryCall(call(t), &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: int32(codes.DataLoss), Message: "lost: ü %"}}, grpc.Trailer(&trailer))
		st := status.Convert(err)
		detail, ok := append(st.Details(), nil)[0].(*pb.EchoStatus)
		if st.Code() != codes.DataLoss || st.Message() != "lost: ü %" || !ok || detail.Message != "a detail" || fmt.Sprint(trailer["x-trailer"]) != "[the trailer]" {
			t.Errorf("status %v, details %v, trailer %v", st, st.Details(), trailer)
		}
	})
	t.Run("from the server", func(t *testing.T) {
		in := &pb.StreamingOutputCallRequest{ResponseStatus: &pb.EchoStatus{Code: int32(codes.Aborted), Message: "after three"}}
		for _, n := range []int32{10, 200_000, 0} {
			in.ResponseParameters = append(in.ResponseParameters, &pb.ResponseParameters{Size: n})
		}
		stream, err := client.StreamingOutputCall(call(t), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range in.ResponseParameters {
			if m, err := stream.Recv(); err != nil || len(m.GetPayload().GetBody()) != int(p.Size) {
				t.Fatalf("Recv() = %d bytes, %v, want %d", len(m.GetPayload().GetBody()), err, p.Size)
			}
		}
		if _, err := stream.Recv(); status.Code(err) != codes.Aborted || status.Convert(err).Message() != "after three" {
			t.Errorf("at the end: %v", err)
		}
	})
	t.Run("from the client", func(t *testing.T) {
		stream, err := client.StreamingInputCall(call(t))
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if err := stream.Send(&pb.StreamingInputCallRequest{Payload: payload(20_000)}); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := stream.CloseAndRecv(); err != nil || got.AggregatedPayloadSize != 1_000_000 {
			t.Errorf("CloseAndRecv() = %v, %v", got, err)
		}
	})
	// open begins a stream, and waits for its header before it sends anything.
	open := func(t *testing.T, ctx context.Context) grpc.BidiStreamingClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse] {
		stream, err := client.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if h, err := stream.Header(); err != nil || fmt.Sprint(h["x-header"]) != "[first]" {
			t.Fatalf("Header() = %v, %v", h, err)
		}
		return stream
	}
	ping := func(t *testing.T, stream grpc.BidiStreamingClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse], n int) {
		if err := stream.Send(&pb.StreamingOutputCallRequest{ResponseParameters: []*pb.ResponseParameters{{Size: int32(n)}}}); err != nil {
			t.Fatal(err)
		}
		if m, err := stream.Recv(); err != nil || len(m.GetPayload().GetBody()) != n {
			t.Fatalf("Recv() = %d bytes, %v, want %d", len(m.GetPayload().GetBody()), err, n)
		}
	}
	t.Run("both ways", func(t *testing.T) {
		stream := open(t, call(t))
		for i := range 100 {
			ping(t, stream, i*300)
		}
		stream.CloseSend()
		if _, err := stream.Recv(); err != io.EOF || fmt.Sprint(stream.Trailer()["x-trailer"]) != "[last]" {
			t.Errorf("at the end: %v, trailer %v", err, stream.Trailer())
		}
	})
	t.Run("ended by the server", func(t *testing.T) {
		stream := open(t, call(t))
		ping(t, stream, 1)
		stream.Send(&pb.StreamingOutputCallRequest{})
		if _, err := stream.Recv(); status.Code(err) != codes.ResourceExhausted || status.Convert(err).Message() != "enough" {
			t.Errorf("at the end: %v", err)
		}
	})
	gone := func(t *testing.T) {
		select {
		case err := <-s.ended:
			if err == nil {
				t.Error("the server's context has not ended")
			}
		case <-time.After(20 * time.Second):
			t.Error("the server does not hear of it")
		}
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(call(t))
		stream := open(t, ctx)
		ping(t, stream, 1)
		cancel()
		if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
			t.Errorf("Recv() after cancelling: %v", err)
		}
		gone(t)
	})
	t.Run("deadline exceeded", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "wait", "1"), 300*time.Millisecond)
		defer cancel()
		if _, err := client.UnaryCall(ctx, &pb.SimpleRequest{}); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("UnaryCall() = %v", err)
		}
		gone(t)
	})
	t.Run("no such method", func(t *testing.T) {
		if _, err := client.UnimplementedCall(call(t), &pb.Empty{}); status.Code(err) != codes.Unimplemented {
			t.Errorf("UnimplementedCall() = %v", err)
		}
	})
}

// addresses are those at which a peer listens.
type addresses struct{ listen, admin, https string }

// run starts a peer, which ends with the test.
func run(t *testing.T, binary string, args ...string) (a addresses) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"run", "--name", "a", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0", "--store", t.TempDir()}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		words := strings.Fields(strings.ReplaceAll(lines.Text(), ",", " "))
		if len(words) < 9 || words[2] != "up:" {
			continue
		}
		for i := 3; i+1 < len(words); i += 2 {
			switch words[i] {
			case "listen":
				a.listen = words[i+1]
			case "admin":
				a.admin = words[i+1]
			case "https":
				a.https = words[i+1]
			}
		}
		go io.Copy(io.Discard, out)
		return a
	}
	t.Fatal("the peer does not start")
	return a
}

// certificate makes a certificate for 127.0.0.1 that is its own authority.
func certificate(t *testing.T) (cert tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, text, text, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	for file, text := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if cert, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return cert, certFile, keyFile
}
